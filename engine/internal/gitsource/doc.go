// Package gitsource makes packed charts of directories in git repositories.
//
// It speaks git's smart protocol itself, over HTTPS and SSH connections of the egress guard, with go-git's codecs for
// messages, packs and objects. So there is no working tree and no configuration, and nothing that those could run or
// follow: no hooks, no submodules, no LFS filters, no local paths, no other helpers. Only the objects of one commit are
// fetched; where the server can filter, only the files of the chart.
//
// The rules to keep: nothing of a pack is believed before it has been measured, a host key is always verified, and no
// credential is written anywhere.
package gitsource
