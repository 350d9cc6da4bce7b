package supervise

import "fmt"

const (
	// Relative to the cluster's directory, which is where the components run.
	etcdSocket     = "etcd.sock"
	etcdPeerSocket = "etcd-peer.sock:0" // etcd insists on a port, which here is part of the file name

	serviceRange        = "10.96.0.0/16"
	kubernetesServiceIP = "10.96.0.1"
	podRange            = "10.244.0.1/16"
)

// etcdArguments: only this directory's owner can reach the sockets, so they need no TLS.
func (c *cluster) etcdArguments() []string {
	return []string{
		"--name=etcd",
		"--data-dir=" + c.data.path,
		"--listen-client-urls=unix://" + etcdSocket,
		"--advertise-client-urls=unix://" + etcdSocket + ":0",
		"--listen-peer-urls=unix://" + etcdPeerSocket,
		"--initial-advertise-peer-urls=unix://" + etcdPeerSocket,
		"--initial-cluster=etcd=unix://" + etcdPeerSocket,
		"--unsafe-no-fsync", // a development cluster may lose its last second to a power cut
		"--snapshot-count=10000",
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=10m",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	}
}

func (c *cluster) apiServerArguments() []string {
	certificates := c.home.path("certificates") + "/"
	return []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port.number),
		"--etcd-servers=unix://" + etcdSocket,
		"--etcd-count-metric-poll-period=0",
		"--tls-cert-file=" + certificates + "kube-apiserver.crt",
		"--tls-private-key-file=" + certificates + "kube-apiserver.key",
		"--client-ca-file=" + certificates + "ca.crt",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + certificates + "service-account.key",
		"--service-account-signing-key-file=" + certificates + "service-account.key",
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--endpoint-reconciler-type=none", // nothing runs in pods that could use the endpoint
		"--allow-privileged",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		"--profiling=false",
	}
}

func (c *cluster) controllerManagerArguments() []string {
	certificates := c.home.path("certificates") + "/"
	arguments := []string{
		"--kubeconfig=" + c.home.path("kube-controller-manager.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + certificates + "service-account.key",
		"--root-ca-file=" + certificates + "ca.crt",
		"--cluster-signing-cert-file=" + certificates + "ca.crt",
		"--cluster-signing-key-file=" + certificates + "ca.key",
		"--service-cluster-ip-range=" + serviceRange,
		// A busy machine delays heartbeats; evicting pods for it would only confuse.
		"--node-monitor-grace-period=10m",
		// At the defaults 100 Deployments take 22 s to get their pods.
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--profiling=false",
	}
	for _, controller := range []string{
		"cron-job", "daemonset", "deployment", "endpoint", "ephemeralvolume", "horizontal-pod-autoscaler", "job",
		"namespace", "rc", "replicaset", "resource-quota", "service-endpoint", "serviceaccount-token",
		"statefulset", "validating-admission-policy-status",
	} {
		arguments = append(arguments, "--concurrent-"+controller+"-syncs=20")
	}
	return arguments
}

func (c *cluster) schedulerArguments() []string {
	return []string{
		"--config=" + c.home.path("kube-scheduler.yaml"),
		"--secure-port=0",
	}
}

func (c *cluster) kwokArguments() []string {
	return []string{
		"--kubeconfig=" + c.home.path("kwok.kubeconfig"),
		"--config=" + c.home.path("kwok.yaml"),
		"--manage-all-nodes=true",
		"--cidr=" + podRange,
		"--node-ip=10.0.0.1",
		// Without leases a restarted KWOK need not wait for those of its predecessor to expire.
		"--node-lease-duration-seconds=0",
	}
}
