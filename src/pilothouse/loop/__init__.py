"""The loop: watch, queue, pass, commit. It meets the world only through ports."""
