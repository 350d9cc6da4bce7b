package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// sshWire runs git-upload-pack on the server, once per request.
type sshWire struct {
	client  *ssh.Client
	command string
	limits  Limits
	forget  func() bool // ends the watch on the context
	current *sshSession
}

type sshSession struct {
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
}

func (f *Fetcher) dialSSH(ctx context.Context, at address, credentials Credentials) (wire, error) {
	signer, err := parseKey(credentials, at)
	if err != nil {
		return nil, err
	}
	hosts, err := f.knownHosts(credentials, at)
	if err != nil {
		return nil, err
	}
	connection, err := f.guard.DialContext(ctx, "tcp", at.hostPort())
	if err != nil {
		return nil, unavailable(at.shown(), err)
	}
	// The handshake knows nothing of contexts: closing the connection is what ends it.
	forget := context.AfterFunc(ctx, func() { _ = connection.Close() })
	var keyErr error
	raw, channels, requests, err := ssh.NewClientConn(connection, at.hostPort(), &ssh.ClientConfig{
		User: at.user,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: func(host string, address net.Addr, key ssh.PublicKey) error {
			keyErr = explainKey(hosts.HostKeyCallback()(host, address, key), at, key)
			return keyErr
		},
		HostKeyAlgorithms: hosts.HostKeyAlgorithms(at.hostPort()),
		ClientVersion:     "SSH-2.0-pilothouse",
		Timeout:           f.limits.Timeout,
	})
	if err != nil {
		forget()
		_ = connection.Close()
		return nil, explainHandshake(ctx, err, keyErr, at)
	}
	return &sshWire{
		client:  ssh.NewClient(raw, channels, requests),
		command: "git-upload-pack " + quote(at.path),
		limits:  f.limits,
		forget:  forget,
	}, nil
}

func parseKey(credentials Credentials, at address) (ssh.Signer, error) {
	if len(credentials.PrivateKey) == 0 {
		return nil, invalid("%s needs an SSH private key, and none was given", at.shown())
	}
	var signer ssh.Signer
	var err error
	if credentials.Passphrase != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(credentials.PrivateKey, []byte(credentials.Passphrase))
	} else {
		signer, err = ssh.ParsePrivateKey(credentials.PrivateKey)
	}
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, invalid("the SSH private key for %s has a passphrase, and none was given", at.shown())
	case err != nil:
		return nil, invalid("the SSH private key for %s cannot be read: it must be PEM, and fit its passphrase", at.shown())
	}
	return signer, nil
}

// knownHosts reads the lines with the library that knows all their forms; it reads files only. They hold public keys.
func (f *Fetcher) knownHosts(credentials Credentials, at address) (*knownhosts.HostKeyDB, error) {
	if len(bytes.TrimSpace(credentials.KnownHosts)) == 0 {
		return nil, invalid("%s needs known_hosts, so that its host key can be verified: add the output of `ssh-keyscan -p %s %s`, "+
			"after comparing it with what the server's owner publishes", at.shown(), at.port, at.host)
	}
	dir, err := f.temporary()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(file, credentials.KnownHosts, 0o600); err != nil {
		return nil, fmt.Errorf("no place for known_hosts: %w", err)
	}
	hosts, err := knownhosts.NewDB(file)
	if err != nil {
		return nil, invalid("the known_hosts for %s cannot be read: each line has a host, a key type and a key", at.shown())
	}
	return hosts, nil
}

func explainKey(err error, at address, key ssh.PublicKey) error {
	switch {
	case err == nil:
		return nil
	case knownhosts.IsHostKeyChanged(err):
		return invalid("the host key of %s is not the one in known_hosts: the server shows %s %s",
			at.shown(), key.Type(), ssh.FingerprintSHA256(key))
	case knownhosts.IsHostUnknown(err):
		return invalid("the host key of %s is not in known_hosts: add the output of `ssh-keyscan -p %s %s` if %s %s is right",
			at.shown(), at.port, at.host, key.Type(), ssh.FingerprintSHA256(key))
	}
	return invalid("the host key of %s is not accepted: known_hosts revokes it", at.shown())
}

func explainHandshake(ctx context.Context, err, keyErr error, at address) error {
	switch {
	case keyErr != nil:
		return keyErr
	case ctx.Err() != nil:
		return unavailable(at.shown(), ctx.Err())
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "%s refused the SSH key of %s", at.shown(), at.user)
	}
	return unavailable(at.shown(), err)
}

func (w *sshWire) start() (*sshSession, error) {
	session, err := w.client.NewSession()
	if err != nil {
		return nil, err
	}
	made := &sshSession{session: session}
	if made.in, err = session.StdinPipe(); err == nil {
		if made.out, err = session.StdoutPipe(); err == nil {
			err = session.Start(w.command)
		}
	}
	if err != nil {
		_ = session.Close()
		return nil, err
	}
	return made, nil
}

func (w *sshWire) advertise(context.Context) (io.ReadCloser, error) {
	started, err := w.start()
	if err != nil {
		return nil, err
	}
	w.current = started
	return io.NopCloser(started.out), nil // the request goes over the same session
}

func (w *sshWire) exchange(_ context.Context, request []byte) (io.ReadCloser, error) {
	using := w.current
	w.current = nil
	if using == nil {
		started, err := w.start()
		if err != nil {
			return nil, err
		}
		using = started
		// A server begins with its references whenever it is asked.
		again := &bounded{r: using.out, left: w.limits.Advertised, excess: io.ErrUnexpectedEOF}
		if err := packp.NewAdvRefs().Decode(again); err != nil {
			_ = using.session.Close()
			return nil, err
		}
	}
	if _, err := using.in.Write(request); err != nil {
		_ = using.session.Close()
		return nil, err
	}
	return &joined{Reader: using.out, Closer: using.session}, nil
}

// close ends the connection; a server that does not answer any more must not hold us.
func (w *sshWire) close() {
	w.forget()
	timer := time.AfterFunc(time.Second, func() { _ = w.client.Conn.Close() })
	defer timer.Stop()
	_ = w.client.Close()
}

// quote is for the shell that the server may start.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
