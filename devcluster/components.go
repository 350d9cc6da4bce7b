package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func runEtcd() error {
	// Segments are allocated ahead, two at a time: 64 MB each would be most of an idle cluster in memory.
	wal.SegmentSizeBytes = 8 << 20
	etcdmain.Main(os.Args)
	return nil
}

func runAPIServer() error         { return exitWith(apiserver.NewAPIServerCommand()) }
func runControllerManager() error { return exitWith(controllermanager.NewControllerManagerCommand()) }
func runScheduler() error         { return exitWith(scheduler.NewSchedulerCommand()) }

func exitWith(command *cobra.Command) error {
	os.Exit(cli.Run(command))
	return nil
}

func runKubectl() error {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return nil
}

func runKwok() error {
	// The Kubernetes components register a --version that is not a bool on the global flags, and cobra
	// adds those to every root command; kwok's own --version cannot live with it.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}
