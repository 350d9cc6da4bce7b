"""What to do: pure functions of values. No clock, no network, no logging."""
