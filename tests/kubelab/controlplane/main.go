// kubelab is one multi-call binary holding the real Kubernetes control plane for the tests:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler. The component
// is chosen by argv[0] or by the first argument; "run" starts another program
// (kwok, Kueue) and ends it with this process.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	_ "time/tzdata"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// dieWithParent ends this process soon after the process named by KUBELAB_PARENT is no longer its
// parent, so that a killed test run leaves nothing behind.
func dieWithParent(onDeath func()) {
	parent, err := strconv.Atoi(os.Getenv("KUBELAB_PARENT"))
	if err != nil {
		return
	}
	go func() {
		for os.Getppid() == parent {
			time.Sleep(500 * time.Millisecond)
		}
		onDeath()
	}()
}

// run starts another program (kwok, Kueue) and ends it when this process ends.
func run(args []string) int {
	runtime.LockOSThread() // Pdeathsig follows the thread
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelab run:", err)
		return 1
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range sig {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kubelab" {
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: kubelab {etcd|kube-apiserver|kube-controller-manager|kube-scheduler|run} [flags]")
			os.Exit(2)
		}
		name = os.Args[1]
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	dieWithParent(func() { os.Exit(137) })
	switch name {
	case "run":
		os.Exit(run(os.Args[1:]))
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(kcm.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "kubelab: unknown component %q\n", name)
		os.Exit(2)
	}
}
