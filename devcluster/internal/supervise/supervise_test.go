package supervise

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCertificatesAreReusedUntilTheyExpire(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	first := mustEnsure(t, dir, now)
	again := mustEnsure(t, dir, now.Add(30*24*time.Hour))
	if !first["admin"].parsed.Equal(again["admin"].parsed) {
		t.Error("a fresh certificate was replaced")
	}
	later := mustEnsure(t, dir, now.Add(certificateLife-renewBefore+time.Hour))
	if first["admin"].parsed.Equal(later["admin"].parsed) {
		t.Error("a certificate about to expire was kept")
	}
	if !first["ca"].parsed.Equal(later["ca"].parsed) {
		t.Error("an authority that is still good was replaced")
	}
	much := mustEnsure(t, dir, now.Add(authorityLife))
	if first["ca"].parsed.Equal(much["ca"].parsed) {
		t.Error("an authority about to expire was kept")
	}
	if err := much["admin"].parsed.CheckSignatureFrom(much["ca"].parsed); err != nil {
		t.Errorf("the new authority has not signed the certificates: %v", err)
	}
}

func TestCertificatesSayWhoTheyAreFor(t *testing.T) {
	all := mustEnsure(t, t.TempDir(), time.Now())
	roots := x509.NewCertPool()
	roots.AddCert(all["ca"].parsed)
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", kubernetesServiceIP} {
		if _, err := all["kube-apiserver"].parsed.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("the server's certificate is not for %s: %v", name, err)
		}
	}
	client := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := all["kube-apiserver"].parsed.Verify(client); err == nil {
		t.Error("the server's certificate would do for a client")
	}
	if got := all["kube-scheduler"].parsed.Subject.Organization; len(got) > 0 {
		t.Errorf("the scheduler is in %v", got)
	}
}

func TestAKeyWithoutItsCertificateIsReplaced(t *testing.T) {
	dir := t.TempDir()
	mustEnsure(t, dir, time.Now())
	other, err := os.ReadFile(filepath.Join(dir, "kwok.key"))
	if err != nil {
		t.Fatal(err)
	}
	// As if the start had been killed between the two files.
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	admin := mustEnsure(t, dir, time.Now())["admin"]
	if !admin.parsedKey.PublicKey.Equal(admin.parsed.PublicKey) {
		t.Error("key and certificate do not belong together")
	}
}

func TestExplain(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	died := func(line string) error {
		return &componentError{component: "etcd", reason: "exit status 2", tail: []string{"before", line}}
	}
	kwok := &componentError{component: "kwok", tail: []string{"write: no space left on device"}}
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"full disk":             {fmt.Errorf("writing: %w", full), "the disk is full at /home/me: free some space and start again"},
		"full disk for etcd":    {died("panic: write: no space left on device"), "etcd stopped because the disk is full at /home/me: free some space and start again"},
		"full memory for etcd":  {(&dataDir{place: "/dev/shm"}).placed(died("panic: write: no space left on device")), "etcd stopped because the disk is full at /dev/shm: free some space and start again"},
		"full memory at once":   {&placedError{"/dev/shm", full}, "the disk is full at /dev/shm: free some space and start again"},
		"another component":     {(&dataDir{place: "/dev/shm"}).placed(kwok), "kwok stopped because the disk is full at /home/me: free some space and start again"},
		"port of a component":   {died("bind: address already in use"), "etcd stopped because its port is taken by another program: start again to get another one"},
		"unknown end":           {died("boom"), "etcd stopped (exit status 2); the end of its log:\nbefore\nboom"},
		"read-only file system": {syscall.EROFS, "cannot write to /home/me: read-only file system"},
		"anything else":         {errors.New("else"), "else"},
	} {
		if got := explain(row.err, "/home/me").Error(); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
}

func TestTheReasonOfAPanicIsNotLostInItsStack(t *testing.T) {
	stack := strings.Repeat("main.main()\n\tmain.go:41 +0x2c2\n", 20)
	got := lastWords("error: no space left on device\npanic: failed to create WAL\n\ngoroutine 1 [running]:\n" + stack)
	if want := []string{"error: no space left on device", "panic: failed to create WAL"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := lastWords(strings.Repeat("line\n", 30)); len(got) != 10 {
		t.Errorf("got %d lines of a log without a panic", len(got))
	}
}

func TestPodsMayBeKeptFromStarting(t *testing.T) {
	if !strings.Contains(stages(), neverStart) {
		t.Error("KWOK's readiness stage changed its form: our expression is not in it")
	}
}

func TestAPortIsReservedAmongSupervisors(t *testing.T) {
	port, err := reservePort(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer port.close()
	if _, err := reservePort(port.number, 0); !errors.Is(err, errPortTaken) {
		t.Errorf("the same port was reserved twice, or refused for another reason: %v", err)
	}
	next, err := reservePort(0, port.number)
	if err != nil {
		t.Fatal(err)
	}
	defer next.close()
	if next.number == port.number {
		t.Error("a taken port was chosen because it was the last one")
	}
}

func TestAPortSomebodyListensOnIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	if _, err := reservePort(taken, 0); err == nil || !strings.Contains(err.Error(), "is taken by another program") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyAPortInUseIsCalledTaken(t *testing.T) {
	listening := func(err error) error {
		return &net.OpError{Op: "listen", Net: "tcp4", Err: os.NewSyscallError("bind", err)}
	}
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"in use":     {listening(syscall.EADDRINUSE), "port 80 on 127.0.0.1 is taken by another program: choose another port, or none to get a free one"},
		"privileged": {listening(syscall.EACCES), "port 80 on 127.0.0.1 is not for this user (permission denied): choose one from 1024 up, or none to get a free one"},
		"no address": {listening(syscall.EADDRNOTAVAIL), "cannot listen on port 80 on 127.0.0.1: bind: cannot assign requested address"},
	} {
		refused := portRefused(80, row.err)
		if got := explain(refused, "/home/me").Error(); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
		if taken := errors.Is(refused, errPortTaken); taken != (name == "in use") {
			t.Errorf("%s: taken is %v", name, taken)
		}
	}
	if _, err := reservePort(65536, 0); err == nil || err.Error() != "cannot listen on port 65536 on 127.0.0.1: address 65536: invalid port" {
		t.Errorf("a number that is no port: got %v", err)
	}
}

func TestALockThatCannotBeMadeIsNoTakenPort(t *testing.T) {
	place := ephemeralPlaces()[0]
	root, err := sharedRoot(place)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody else's, as it is no port at all; and no file can be opened where a directory is.
	number := 100_000 + os.Getpid()
	blocked := filepath.Join(root, fmt.Sprintf("port-%d", number))
	if err := os.Mkdir(blocked, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(blocked) }()
	_, err = reservePort(number, 0)
	var placed *placedError
	if !errors.As(err, &placed) || placed.place != place || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("got %v", err)
	}
}

func TestDataGoesWhereThereIsRoom(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, row := range []struct {
		enough uint64
		want   string
	}{{1, first}, {math.MaxUint64, second}} {
		left, err := sharedRoot(first)
		if err != nil {
			t.Fatal(err)
		}
		left = filepath.Join(left, "etcd-of-a-killed-one")
		if err := os.Mkdir(left, 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := openEphemeral([]string{first, second}, row.enough)
		if err != nil {
			t.Fatal(err)
		}
		if data.place != row.want || !strings.HasPrefix(data.path, row.want) {
			t.Errorf("with %d bytes wanted: got %s in %s, want %s", row.enough, data.path, data.place, row.want)
		}
		// It may be why there is no room.
		if _, err := os.Stat(left); err == nil {
			t.Errorf("with %d bytes wanted: %s was left", row.enough, left)
		}
		data.close()
		if _, err := os.Stat(data.path); err == nil {
			t.Errorf("%s was left", data.path)
		}
	}
}

func TestAPlaceThatCannotBeUsedIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openEphemeral([]string{file}, 0)
	var placed *placedError
	if !errors.As(err, &placed) || placed.place != file {
		t.Errorf("got %v", err)
	}
}

func mustEnsure(t *testing.T, dir string, now time.Time) identities {
	t.Helper()
	all, err := ensureCertificates(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
