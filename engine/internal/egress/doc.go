// Package egress guards every connection to an address that a user gave: chart sources, webhooks, identity
// providers, the servers of kubeconfigs.
//
// Whoever may write a Release could otherwise make the engine talk to what only its machine can reach: the cloud's
// metadata service, services on loopback, the API server with the pod's place in the network. The address is checked
// at the moment of connecting, after the name has been resolved, so that an answer that changes between a check and
// the connection (DNS rebinding) gains nothing.
//
// The rule to keep: nothing that a user names is dialled except through a Guard. The cloud libraries' own questions
// to metadata services are not a user's, and do not come here.
package egress
