package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	serveroptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
)

// The server wants to know where another one is, and asks it for nothing.
const nobody = `{"apiVersion": "v1", "kind": "Config", "current-context": "nobody",
"clusters": [{"name": "nobody", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "nobody", "context": {"cluster": "nobody"}}]}`

// Starts an API server that keeps its objects below a prefix of the test, and lets everybody do everything: the program that
// CONFORMANCE_KUBE_APISERVER names, else the server for custom resources in this process.
func server(t *testing.T) *rest.Config {
	t.Helper()
	var way *rest.Config
	ended := make(chan error, 1)
	// The one in this process never gets ready: it waits for what another server, which is nobody, has to say.
	path := "/healthz"
	if program := os.Getenv("CONFORMANCE_KUBE_APISERVER"); program != "" {
		way, path = startProgram(t, program, ended), "/readyz"
	} else {
		way = startHere(t, ended)
	}
	way.QPS, way.Burst = 10_000, 10_000
	client, err := clientset.NewForConfig(way)
	ok(t, err)
	asked := func() error {
		return client.Discovery().RESTClient().Get().AbsPath(path).Do(context.Background()).Error()
	}
	for deadline := time.Now().Add(patience); asked() != nil; time.Sleep(100 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not get ready: %v", asked())
		}
	}
	return way
}

func prefix(t *testing.T) string { return "/apiserver/" + t.Name() }

func stores() []string {
	var found []string
	for _, address := range strings.Split(os.Getenv("CONFORMANCE_ENDPOINTS"), ",") {
		found = append(found, "http://"+address)
	}
	return found
}

// Starts the server for custom resources in this process.
func startHere(t *testing.T, ended chan<- error) *rest.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	ok(t, os.WriteFile(file, []byte(nobody), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	options := serveroptions.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	recommended := options.RecommendedOptions
	recommended.Etcd.StorageConfig.Prefix = prefix(t)
	recommended.Etcd.StorageConfig.Transport.ServerList = stores()
	recommended.SecureServing.Listener = listener
	recommended.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	recommended.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	recommended.SecureServing.ServerCert.CertDirectory = t.TempDir()
	recommended.CoreAPI.CoreAPIKubeconfigPath = file
	recommended.Authentication, recommended.Authorization, recommended.Admission = nil, nil, nil
	recommended.Features.EnablePriorityAndFairness = false
	ok(t, options.Complete())
	config, err := options.Config()
	ok(t, err)
	it, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	ok(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		ended <- it.GenericAPIServer.PrepareRun().RunWithContext(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return rest.CopyConfig(it.GenericAPIServer.LoopbackClientConfig)
}

// Starts kube-apiserver as a process, on the port that the suite holds for it: tests run one after another.
func startProgram(t *testing.T, program string, ended chan<- error) *rest.Config {
	t.Helper()
	port := os.Getenv("CONFORMANCE_KUBE_APISERVER_PORT")
	dir := t.TempDir()
	key, tokens := filepath.Join(dir, "key"), filepath.Join(dir, "tokens")
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	ok(t, err)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}
	ok(t, os.WriteFile(key, pem.EncodeToMemory(block), 0o600))
	const token = "the-token-of-the-tests"
	ok(t, os.WriteFile(tokens, []byte(token+",tests,1,system:masters\n"), 0o600))
	logs, err := os.Create(filepath.Join(dir, "log"))
	ok(t, err)
	command := exec.Command(program,
		"--etcd-servers="+strings.Join(stores(), ","), "--etcd-prefix="+prefix(t),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+dir,
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file="+key, "--service-account-key-file="+key,
		"--authorization-mode=AlwaysAllow", "--token-auth-file="+tokens,
	)
	command.Stdout, command.Stderr = logs, logs
	ok(t, command.Start())
	done := make(chan struct{})
	go func() {
		ended <- command.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			_ = command.Process.Kill()
			<-done
		}
		_ = logs.Close()
		if said, err := os.ReadFile(logs.Name()); err == nil && t.Failed() {
			t.Logf("the end of its log:\n%s", said[max(0, len(said)-4000):])
		}
	})
	return &rest.Config{
		Host:            "https://127.0.0.1:" + port,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
}
