// The kubelet stand-in: what a kube-apiserver needs of a node for logs, exec, attach and port-forward,
// without containers.
//
// The streams are served by the kubelet's own library (k8s.io/kubelet/pkg/cri/streaming), so what a client
// meets behind a real kube-apiserver is the real thing, SPDY behind the translation of v5 WebSockets
// included. A "container" is a name: its commands are processes of this machine, its ports are ports of
// 127.0.0.1, and its logs are files:
//
//	LOGS/NAMESPACE_POD_CONTAINER.log     lines of "RFC3339-TIME text"; .previous.log for the one before
//	LOGS/NAMESPACE_POD_CONTAINER.done    the container has ended: a follower may go
//
// A container without a .log file is not known. Attaching talks to a process that repeats what it reads.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	remotecommandconst "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
)

const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

var protocols = []string{
	remotecommandconst.StreamProtocolV4Name, remotecommandconst.StreamProtocolV3Name,
	remotecommandconst.StreamProtocolV2Name, remotecommandconst.StreamProtocolV1Name,
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	cert := flag.String("cert", "", "server certificate (PEM)")
	key := flag.String("key", "", "its key (PEM)")
	logs := flag.String("logs", ".", "directory of the containers' logs")
	flag.Parse()
	n := &node{logs: *logs}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", n.serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.servePortForward)
	server := &http.Server{Addr: *listen, Handler: mux}
	fmt.Fprintln(os.Stderr, server.ListenAndServeTLS(*cert, *key))
	os.Exit(1)
}

// container answers 404, as a kubelet does, for one that this node does not run.
func (n *node) container(w http.ResponseWriter, r *http.Request) (string, bool) {
	pod, container := r.PathValue("pod"), r.PathValue("container")
	name := strings.Join([]string{r.PathValue("namespace"), pod, container}, "_")
	if _, err := os.Stat(n.path(name, ".log")); err != nil {
		text := fmt.Sprintf("container %q not found in pod %q", container, pod)
		http.Error(w, text, http.StatusNotFound)
		return "", false
	}
	return name, true
}

func (n *node) serveExec(w http.ResponseWriter, r *http.Request) {
	name, ok := n.container(w, r)
	if !ok {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, words := r.PathValue("pod"), r.URL.Query()["command"]
	remotecommand.ServeExec(w, r, n, pod, "", name, words, opts, idleTimeout, creationTimeout, protocols)
}

func (n *node) serveAttach(w http.ResponseWriter, r *http.Request) {
	name, ok := n.container(w, r)
	if !ok {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod := r.PathValue("pod")
	remotecommand.ServeAttach(w, r, n, pod, "", name, opts, idleTimeout, creationTimeout, protocols)
}

func (n *node) servePortForward(w http.ResponseWriter, r *http.Request) {
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, supported := r.PathValue("pod"), portforward.SupportedProtocols
	portforward.ServePortForward(w, r, n, pod, "", opts, idleTimeout, creationTimeout, supported)
}
