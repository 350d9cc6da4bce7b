"""The door to those who measure: what is counted, and where it is read."""
