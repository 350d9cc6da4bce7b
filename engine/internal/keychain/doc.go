// Package keychain logs in to the clouds' own registries (ECR, Artifact Registry and GCR, ACR) as this machine.
//
// It is asked only for charts without credentials of their own, answers only for hosts that belong to those clouds,
// and only when the registry's certificate will be verified: nobody else is ever shown what it gives. Whoever may
// write a Release can read the charts that the machine may read, as with every Helm on such a machine.
//
// The libraries' own questions to metadata and token services are not guarded: no user chose their addresses.
package keychain
