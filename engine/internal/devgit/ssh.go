// Package devgit serves git repositories over SSH with the real `git upload-pack`, for tests and development. Nothing
// of it is in the engine.
package devgit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// user is who may read, as git servers are used to.
const user = "git"

// Server serves the repositories below a directory to whoever has its one key.
type Server struct {
	Address    string
	PrivateKey []byte // PEM
	KnownHosts string

	root     string
	listener net.Listener
	group    sync.WaitGroup
}

// Serve starts a server on loopback, with keys of its own.
func Serve(root string) (*Server, error) {
	host, _, err := NewKey()
	if err != nil {
		return nil, err
	}
	client, private, err := NewKey()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	server := &Server{
		Address: address, PrivateKey: private, KnownHosts: knownhosts.Line([]string{address}, host.PublicKey()),
		root: root, listener: listener,
	}
	allowed := client.PublicKey().Marshal()
	settings := &ssh.ServerConfig{PublicKeyCallback: func(at ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if at.User() != user || !bytes.Equal(key.Marshal(), allowed) {
			return nil, errors.New("not you")
		}
		return &ssh.Permissions{}, nil
	}}
	settings.AddHostKey(host)
	server.group.Go(func() { server.accept(settings) })
	return server, nil
}

// Close ends the server when its last client has left.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.group.Wait()
}

// NewKey makes a key; the bytes are its private half in PEM.
func NewKey() (ssh.Signer, []byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	return signer, pem.EncodeToMemory(block), err
}

func (s *Server) accept(settings *ssh.ServerConfig) {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.group.Go(func() { s.connection(connection, settings) })
	}
}

func (s *Server) connection(connection net.Conn, settings *ssh.ServerConfig) {
	defer func() { _ = connection.Close() }()
	_, channels, requests, err := ssh.NewServerConn(connection, settings)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, asked)
	}
}

// session runs the one program it knows, and ends.
func (s *Server) session(channel ssh.Channel, asked <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for request := range asked {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		var line struct{ Command string }
		_ = ssh.Unmarshal(request.Payload, &line)
		if path, ok := strings.CutPrefix(line.Command, "git-upload-pack "); ok {
			s.uploadPack(channel, strings.Trim(path, "'"))
		}
		return
	}
}

func (s *Server) uploadPack(channel ssh.Channel, path string) {
	command := exec.Command("git", "upload-pack", filepath.Join(s.root, filepath.Clean("/"+path)))
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	command.Stdout, command.Stderr = channel, channel.Stderr()
	in, err := command.StdinPipe()
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(in, channel); _ = in.Close() }()
	_ = command.Run()
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
}
