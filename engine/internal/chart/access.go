package chart

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// login is what one host is told.
type login struct {
	username, password string
	bearer             string // shown as it is
	identity           string // exchanged for a bearer token, by registries only
}

func (l login) apply(request *http.Request) {
	switch {
	case l.bearer != "":
		request.Header.Set("Authorization", "Bearer "+l.bearer)
	case l.username != "" || l.password != "":
		request.SetBasicAuth(l.username, l.password)
	}
}

func (l login) forRegistry() auth.Credential {
	return auth.Credential{
		Username: l.username, Password: l.password, AccessToken: l.bearer, RefreshToken: l.identity,
	}
}

// loginFor returns what a source's credentials say for one address. Username, password and bearer token are for
// the host, port and scheme that the source names and for no other, wherever an index may point to; a docker
// config names its hosts itself.
func loginFor(source *enginev1.ChartSource, target *url.URL) (login, error) {
	home, err := url.Parse(location(source))
	if err == nil && home.Host == target.Host && home.Scheme == target.Scheme {
		if source.GetBearerToken() != "" {
			return login{bearer: source.GetBearerToken()}, nil
		}
		if source.GetUsername() != "" || source.GetPassword() != "" {
			return login{username: source.GetUsername(), password: source.GetPassword()}, nil
		}
		if home.User != nil {
			password, _ := home.User.Password()
			return login{username: home.User.Username(), password: password}, nil
		}
	}
	if len(source.GetDockerConfig()) == 0 {
		return login{}, nil
	}
	if target.Scheme == "http" && !source.GetPlainHttp() && home != nil && home.Scheme != "http" {
		return login{}, nil // an index must not talk us into sending a password in the clear
	}
	return fromDockerConfig(source.GetDockerConfig(), target.Host, target.Path)
}

type dockerLogin struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// fromDockerConfig finds the entry for a host: as kubelets do, an entry may name a path below the host and may
// have wildcards in the host's labels; the longest one that fits wins.
func fromDockerConfig(config []byte, host, below string) (login, error) {
	var read struct {
		Auths map[string]dockerLogin `json:"auths"`
	}
	if err := json.Unmarshal(config, &read); err != nil { // the error may quote the Secret
		return login{}, invalid("the pull secret's .dockerconfigjson is not a docker config")
	}
	best, found := "", dockerLogin{}
	for name, entry := range read.Auths {
		if fits(name, host, below) && len(name) >= len(best) && (len(name) > len(best) || name > best) {
			best, found = name, entry
		}
	}
	if best == "" {
		return login{}, nil
	}
	out := login{
		username: found.Username, password: found.Password,
		bearer: found.RegistryToken, identity: found.IdentityToken,
	}
	if out.username == "" && out.password == "" && found.Auth != "" {
		decoded, err := base64.StdEncoding.DecodeString(found.Auth)
		if err != nil {
			return login{}, invalid("the pull secret's .dockerconfigjson has an auth that is not base64")
		}
		out.username, out.password, _ = strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	}
	return out, nil
}

// Docker Hub is known by many names.
var dockerHub = map[string]bool{"docker.io": true, "index.docker.io": true, "registry-1.docker.io": true}

func fits(entry, host, below string) bool {
	_, rest, found := strings.Cut(entry, "://")
	if !found {
		rest = entry
	}
	name, under, _ := strings.Cut(rest, "/")
	if dockerHub[name] && dockerHub[host] {
		return true
	}
	labels, wanted := strings.Split(name, "."), strings.Split(host, ".")
	if len(labels) != len(wanted) {
		return false
	}
	for i, label := range labels {
		if ok, err := path.Match(label, wanted[i]); err != nil || !ok {
			return false
		}
	}
	under = strings.Trim(under, "/")
	if under == "" || under == "v1" || under == "v2" { // the API's own prefix, as `docker login` writes it
		return true
	}
	below = strings.TrimPrefix(strings.Trim(below, "/"), "v2/")
	return below == under || strings.HasPrefix(below, under+"/")
}
