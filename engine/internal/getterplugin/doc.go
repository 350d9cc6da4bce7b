// Package getterplugin fetches charts from URL schemes that an operator adds with Helm's getter plugins.
//
// A plugin is a program of the operator's, and Helm runs it with all rights, without an end in time and without a
// bound on what it sends. So the engine starts itself once more as a child (Child), which loads the plugins with
// Helm's own code and runs one of them; the child and whatever it started are ended when the time is up or when too
// much has come.
//
// The rules to keep: nothing is run for a scheme that the operator has not named, and credentials go to the child on
// its standard input, never on its command line.
package getterplugin
