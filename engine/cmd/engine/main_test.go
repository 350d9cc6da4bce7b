package main

import "testing"

func TestShareIsHalfAndNeverNothing(t *testing.T) {
	for available, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 16: 8} {
		if got := share(available); got != want {
			t.Errorf("%d of %d CPUs, want %d", got, available, want)
		}
	}
}
