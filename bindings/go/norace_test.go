//go:build !race

package windrow_test

const raceEnabled = false
