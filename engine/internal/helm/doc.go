// Package helm runs Helm's verbs against a cluster and tells what storage really holds afterwards.
//
// It has no opinions: no retries of actions, no policy. What it does add is what Helm leaves undone: waits that
// can be cancelled while applies cannot, no record left pending, no CRD ever updated or deleted by accident, a
// record that says which request made it.
package helm
