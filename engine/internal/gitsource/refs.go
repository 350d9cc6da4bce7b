package gitsource

import (
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// choice is a commit, and what to ask the server for to get it.
type choice struct {
	Pointer

	wants []plumbing.Hash
	whole bool // the server hands out no single commit: take the history and look for it
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// choose finds the commit that a reference means among what the server advertises.
func choose(refs *packp.AdvRefs, wanted Reference, place string) (choice, error) {
	if err := one(wanted); err != nil {
		return choice{}, err
	}
	switch {
	case wanted.Commit != "":
		return chooseCommit(refs, wanted, place)
	case wanted.Semver != "":
		return chooseSemver(refs, wanted.Semver, place)
	case wanted.Tag != "":
		return chooseTag(refs, wanted.Tag, place)
	case wanted.Branch != "":
		tip, ok := refs.References["refs/heads/"+wanted.Branch]
		if !ok {
			return choice{}, notFound("there is no branch %q in %s", wanted.Branch, place)
		}
		return choice{Pointer: Pointer{Commit: tip.String()}, wants: []plumbing.Hash{tip}}, nil
	}
	if refs.Head == nil {
		return choice{}, notFound("%s has no default branch: set git.ref.branch", place)
	}
	return choice{Pointer: Pointer{Commit: refs.Head.String()}, wants: []plumbing.Hash{*refs.Head}}, nil
}

func one(wanted Reference) error {
	set := 0
	for _, value := range []string{wanted.Tag, wanted.Semver, wanted.Commit} {
		if value != "" {
			set++
		}
	}
	if set > 1 || (wanted.Branch != "" && (wanted.Tag != "" || wanted.Semver != "")) {
		return invalid("git.ref names more than one of branch, tag, semver and commit: only branch and commit go together")
	}
	return nil
}

func chooseTag(refs *packp.AdvRefs, tag, place string) (choice, error) {
	name := "refs/tags/" + tag
	tip, ok := refs.References[name]
	if !ok {
		return choice{}, notFound("there is no tag %q in %s", tag, place)
	}
	commit := tip
	if peeled, ok := refs.Peeled[name]; ok {
		commit = peeled // of an annotated tag; only the tag itself may be asked for
	}
	return choice{Pointer: Pointer{Commit: commit.String(), Tag: tag}, wants: []plumbing.Hash{tip}}, nil
}

func chooseSemver(refs *packp.AdvRefs, text, place string) (choice, error) {
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return choice{}, invalid("git.ref.semver %q is not a version range", text)
	}
	var best *semver.Version
	chosen := ""
	for name := range refs.References {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if !ok {
			continue
		}
		version, err := semver.NewVersion(tag)
		if err != nil || !constraint.Check(version) {
			continue
		}
		// Equal versions (v1.0.0 and 1.0.0, build metadata): the order of a map must not decide.
		if best == nil || version.GreaterThan(best) || (version.Equal(best) && tag > chosen) {
			best, chosen = version, tag
		}
	}
	if best == nil {
		return choice{}, notFound("no tag of %s is in the range %q", place, text)
	}
	return chooseTag(refs, chosen, place)
}

func chooseCommit(refs *packp.AdvRefs, wanted Reference, place string) (choice, error) {
	commit := strings.ToLower(wanted.Commit)
	if !fullHash.MatchString(commit) {
		return choice{}, invalid("git.ref.commit is not a full commit id of 40 hex digits")
	}
	found := choice{Pointer: Pointer{Commit: commit}, wants: []plumbing.Hash{plumbing.NewHash(commit)}}
	for name, tip := range refs.References {
		if tip.String() == commit || refs.Peeled[name].String() == commit {
			found.wants = []plumbing.Hash{tip}
			return found, nil
		}
	}
	if refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return found, nil
	}
	found.wants, found.whole = nil, true
	if wanted.Branch != "" {
		tip, ok := refs.References["refs/heads/"+wanted.Branch]
		if !ok {
			return choice{}, notFound("there is no branch %q in %s", wanted.Branch, place)
		}
		found.wants = []plumbing.Hash{tip}
		return found, nil
	}
	for name, tip := range refs.References {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			found.wants = append(found.wants, tip)
		}
	}
	slices.SortFunc(found.wants, func(a, b plumbing.Hash) int { return strings.Compare(a.String(), b.String()) })
	found.wants = slices.Compact(found.wants)
	return found, nil
}
