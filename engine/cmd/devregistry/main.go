// Command devregistry serves an empty OCI registry on loopback until its standard input closes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/devregistry"
)

func main() {
	user := flag.String("user", "", "who may use it; anyone by default")
	password := flag.String("password", "", "that user's password")
	dir := flag.String("dir", os.TempDir(), "where its password file goes")
	flag.Parse()
	if err := run(*dir, *user, *password); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, user, password string) error {
	registry, err := devregistry.New(context.Background(), dir, user, password)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: registry, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
