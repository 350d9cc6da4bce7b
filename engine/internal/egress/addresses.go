package egress

import (
	"net/netip"
	"slices"
)

// class is what the guard thinks of an address.
type class int

const (
	ordinary  class = iota
	loopback        // refused unless allowed
	forbidden       // refused whatever the operator allows
)

// forbiddenRanges lead to the machine's own network segment, to everybody, or to nobody.
var forbiddenRanges = prefixes(
	"0.0.0.0/8",      // "this network": Linux connects to loopback
	"169.254.0.0/16", // link-local, and almost every cloud's metadata service
	"224.0.0.0/4",    // multicast
	"240.0.0.0/4",    // reserved, and broadcast
	"::/128",         // unspecified
	"fe80::/10",      // link-local
	"ff00::/8",       // multicast
)

// metadataServices are those outside the link-local ranges.
var metadataServices = addresses(
	"100.100.100.200",     // Alibaba Cloud
	"168.63.129.16",       // Azure's host agent
	"192.0.0.192",         // Oracle Cloud, classic
	"fd00:ec2::254",       // AWS instances
	"fd00:ec2::23",        // AWS pod identities
	"fd00:ec2::253",       // AWS resolver
	"fd20:ce::254",        // Google Cloud
	"fd00:42::42",         // Scaleway
	"fd00:a9fe:a9fe::254", // OpenStack-like clouds
)

// metadataNames are refused even where a proxy, and not this machine, would resolve them.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
}

// classify judges an address by the worst of what it may stand for.
func classify(address netip.Addr) class {
	worst := ordinary
	for _, one := range meanings(address) {
		worst = max(worst, classOf(one))
	}
	return worst
}

func classOf(address netip.Addr) class {
	inside := func(prefix netip.Prefix) bool { return prefix.Contains(address) }
	switch {
	case slices.ContainsFunc(forbiddenRanges, inside), slices.Contains(metadataServices, address):
		return forbidden
	case address.IsLoopback():
		return loopback
	}
	return ordinary
}

var (
	compatible  = netip.MustParsePrefix("::/96")
	wellKnown64 = netip.MustParsePrefix("64:ff9b::/96")
	local64     = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour   = netip.MustParsePrefix("2002::/16")
	teredo      = netip.MustParsePrefix("2001::/32")
)

// meanings are the address and the IPv4 addresses that its bits carry: a translator or tunnel on the way would
// connect to those.
func meanings(address netip.Addr) []netip.Addr {
	address = address.Unmap().WithZone("")
	found := []netip.Addr{address}
	if address.Is4() {
		return found
	}
	raw := address.As16()
	four := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(raw[at : at+4])) }
	switch {
	case address == netip.IPv6Loopback() || address == netip.IPv6Unspecified():
	case compatible.Contains(address), wellKnown64.Contains(address):
		found = append(found, four(12))
	case local64.Contains(address):
		// The length of a translator's own prefix (48, 56, 64 or 96) is not known here. RFC 6052 leaves out byte 8.
		for _, at := range [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
			if raw[at[0]] != 0 { // else a shorter address is being read at the wrong place
				found = append(found, netip.AddrFrom4([4]byte{raw[at[0]], raw[at[1]], raw[at[2]], raw[at[3]]}))
			}
		}
	case sixToFour.Contains(address):
		found = append(found, four(2))
	case teredo.Contains(address):
		client := [4]byte{^raw[12], ^raw[13], ^raw[14], ^raw[15]}
		found = append(found, four(4), netip.AddrFrom4(client))
	case (raw[8] == 0 || raw[8] == 2) && raw[9] == 0 && raw[10] == 0x5e && raw[11] == 0xfe: // ISATAP
		found = append(found, four(12))
	}
	return found
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

func addresses(texts ...string) []netip.Addr {
	out := make([]netip.Addr, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParseAddr(text)
	}
	return out
}
