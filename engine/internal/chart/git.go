package chart

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/gitsource"
)

const gitKind = "git"

// gitRepositories is the source for charts in git.
type gitRepositories struct{ fetcher *gitsource.Fetcher }

// RegisterGit adds git as a source.
func (s *Store) RegisterGit(fetcher *gitsource.Fetcher) {
	s.Register(gitKind, gitRepositories{fetcher})
}

// Locate resolves a reference to one commit; a commit needs no request.
func (g gitRepositories) Locate(ctx context.Context, ask *Ask) (*Located, error) {
	request := gitRequest(ask.ChartSource)
	commit := strings.ToLower(request.Reference.Commit)
	if commit == "" {
		found, err := g.fetcher.Resolve(ctx, request)
		if err != nil {
			return nil, err
		}
		commit = found.Commit
	}
	request.Reference = gitsource.Reference{Branch: request.Reference.Branch, Commit: commit}
	return &Located{
		Key: request.URL + "@" + commit + ":" + request.Path,
		Fetch: func(ctx context.Context) (*Package, error) {
			made, err := g.fetcher.Fetch(ctx, request)
			return &Package{Packed: made.Chart}, err
		},
	}, nil
}

// Tell answers all queries with one request: what a repository says first are all its references.
func (g gitRepositories) Tell(ctx context.Context, ask *Ask, queries []Query) ([]Answer, error) {
	answers := make([]Answer, len(queries))
	references := make([]gitsource.Reference, len(queries))
	for i, query := range queries {
		references[i], answers[i].Err = referenceFrom(query.Version)
	}
	found, err := g.fetcher.ResolveAll(ctx, gitRequest(ask.ChartSource), references)
	if err != nil {
		return nil, err
	}
	for i, one := range found {
		switch {
		case answers[i].Err != nil:
		case one.Err != nil:
			answers[i].Err = one.Err
		default:
			answers[i] = Answer{Version: one.Commit, Tag: one.Tag, Newer: one.Commit != queries[i].Held}
		}
	}
	return answers, nil
}

func referenceFrom(text string) (gitsource.Reference, error) {
	kind, value, _ := strings.Cut(text, " ")
	switch {
	case text == "" || text == "HEAD":
		return gitsource.Reference{}, nil
	case kind == "branch" && value != "":
		return gitsource.Reference{Branch: value}, nil
	case kind == "tag" && value != "":
		return gitsource.Reference{Tag: value}, nil
	case kind == "semver" && value != "":
		return gitsource.Reference{Semver: value}, nil
	}
	return gitsource.Reference{}, invalid("%q names neither a branch, nor a tag, nor a semver range", text)
}

func gitRequest(source *enginev1.ChartSource) gitsource.Request {
	git := source.GetGit()
	return gitsource.Request{
		URL:       git.GetUrl(),
		Reference: gitsource.Reference{Branch: git.GetBranch(), Tag: git.GetTag(), Semver: git.GetSemver(), Commit: git.GetCommit()},
		Path:      git.GetPath(),
		Credentials: gitsource.Credentials{
			Username: source.GetUsername(), Password: source.GetPassword(), Bearer: source.GetBearerToken(),
			PrivateKey: git.GetPrivateKey(), Passphrase: git.GetPassphrase(), KnownHosts: git.GetKnownHosts(),
		},
		CABundle:          source.GetCaBundle(),
		ClientCertificate: source.GetClientCertificate(), ClientKey: source.GetClientKey(),
		InsecureSkipTLSVerify: source.GetInsecureSkipTlsVerify(), PlainHTTP: source.GetPlainHttp(),
	}
}

// placeOf is a request without what leads to the same bytes in other words.
func placeOf(source *enginev1.ChartSource) *enginev1.ChartSource {
	same := tidy(source)
	same.Name, same.Version = "", ""
	if git := same.GetGit(); git != nil {
		bare := proto.Clone(git).(*enginev1.GitSource)
		bare.Branch, bare.Tag, bare.Semver, bare.Commit = "", "", "", ""
		same.Git = bare
	}
	return same
}
