package gitsource

import (
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// address is where a repository is.
type address struct {
	scheme string // https, http or ssh
	user   string
	host   string
	port   string
	path   string // of ssh as the server's shell gets it; of http with its leading slash
}

// short is the form user@host:path that git takes for SSH. A path of one letter would be a drive.
var short = regexp.MustCompile(`^([A-Za-z0-9._-]+)@([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):([^/].*|/.+)$`)

func parseAddress(text string, plainHTTP bool) (address, error) {
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return address{}, invalid("git.url contains a control character")
	}
	if found := short.FindStringSubmatch(text); found != nil && !strings.Contains(text, "://") {
		return checked(address{scheme: "ssh", user: found[1], host: strings.Trim(found[2], "[]"), port: "22", path: found[3]})
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return address{}, invalid("git.url is not a repository's address: use https://…, ssh://user@host/… or user@host:path")
	}
	if _, set := parsed.User.Password(); set {
		return address{}, invalid("git.url of %s carries a password: put it into the credentials", parsed.Host)
	}
	if parsed.RawQuery != "" || parsed.Fragment != "" {
		return address{}, invalid("git.url of %s has a query or a fragment", parsed.Host)
	}
	at := address{scheme: strings.ToLower(parsed.Scheme), user: parsed.User.Username(), host: parsed.Hostname(), port: parsed.Port(), path: parsed.Path}
	switch at.scheme {
	case "ssh":
		at.port = orElse(at.port, "22")
		at.user = orElse(at.user, "git")
	case "https":
		at.port = orElse(at.port, "443")
	case "http":
		if !plainHTTP {
			return address{}, invalid("git.url of %s uses http, which shows credentials to everybody: use https, or set plainHTTP", parsed.Host)
		}
		at.port = orElse(at.port, "80")
	default:
		return address{}, invalid("git.url uses %s, which is not supported: use https or ssh", at.scheme)
	}
	return checked(at)
}

// checked refuses what a server could take for an option, and addresses of nothing.
func checked(at address) (address, error) {
	if strings.Trim(at.path, "/") == "" {
		return address{}, invalid("git.url of %s names no repository", at.host)
	}
	if strings.HasPrefix(at.path, "-") || strings.HasPrefix(at.user, "-") {
		return address{}, invalid("git.url of %s has a user or a path that begins with a dash", at.host)
	}
	return at, nil
}

func (a address) hostPort() string { return net.JoinHostPort(a.host, a.port) }

// shown is for messages.
func (a address) shown() string {
	host := a.host
	if usual := map[string]string{"ssh": "22", "https": "443", "http": "80"}[a.scheme]; a.port != usual {
		host = a.hostPort()
	}
	return a.scheme + "://" + host + "/" + strings.TrimLeft(a.path, "/")
}

// cleanPath is a directory inside a repository; empty means the repository itself.
func cleanPath(text string) (string, error) {
	parts := strings.Split(text, "/")
	for _, part := range parts {
		if part == ".." || strings.ContainsAny(part, "\\\x00") {
			return "", invalid("git.path %q reaches outside the repository", text)
		}
	}
	if path.IsAbs(text) {
		return "", invalid("git.path %q is absolute: name the directory inside the repository", text)
	}
	clean := path.Clean("/" + text)
	return strings.TrimPrefix(clean, "/"), nil
}
