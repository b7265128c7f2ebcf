//go:build race

package testenv

// raceDetector says whether the tests run with it.
const raceDetector = true
