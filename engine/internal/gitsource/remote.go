package gitsource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// wire carries git's upload-pack service.
type wire interface {
	// advertise opens the service; the server begins with its references.
	advertise(ctx context.Context) (io.ReadCloser, error)
	// exchange sends one request and gives the answer.
	exchange(ctx context.Context, request []byte) (io.ReadCloser, error)
	close()
}

// remote is a repository somewhere else, and its references.
type remote struct {
	wire   wire
	place  string
	limits Limits
	refs   *packp.AdvRefs
}

func (r *remote) close() { r.wire.close() }

func (r *remote) discover(ctx context.Context) error {
	stream, err := r.wire.advertise(ctx)
	if err != nil {
		return unavailable(r.place, err)
	}
	defer func() { _ = stream.Close() }()
	refs := packp.NewAdvRefs()
	err = refs.Decode(&bounded{r: stream, left: r.limits.Advertised, excess: invalid("%s has too many references", r.place)})
	var said *pktline.ErrorLine
	switch {
	case ctx.Err() != nil:
		return unavailable(r.place, ctx.Err())
	case errors.As(err, &said):
		return notFound("%s says: %s", r.place, said.Text)
	case errors.Is(err, packp.ErrEmptyInput):
		return notFound("there is no repository at %s, or these credentials may not read it", r.place)
	case errors.Is(err, packp.ErrEmptyAdvRefs) || (err == nil && refs.IsEmpty()):
		return notFound("%s is empty", r.place)
	case err != nil:
		return unavailable(r.place, err)
	}
	r.refs = refs
	return nil
}

// ask is what to fetch.
type ask struct {
	wants   []plumbing.Hash
	shallow bool // only these commits, not what came before
	noFiles bool // commits and trees, no files
}

// fetch asks for objects and gives the pack they come in.
func (r *remote) fetch(ctx context.Context, what ask) (io.ReadCloser, error) {
	request := packp.NewUploadPackRequest()
	request.Wants = what.wants
	mine := request.Capabilities
	for _, one := range []capability.Capability{capability.OFSDelta, capability.NoProgress, capability.Sideband64k} {
		if r.refs.Capabilities.Supports(one) {
			_ = mine.Set(one)
		}
	}
	if what.shallow && r.refs.Capabilities.Supports(capability.Shallow) {
		_ = mine.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(1)
	}
	if what.noFiles {
		_ = mine.Set(capability.Filter)
		request.Filter = packp.FilterBlobNone()
	}
	body, err := encode(request)
	if err != nil {
		return nil, err
	}
	stream, err := r.wire.exchange(ctx, body)
	if err != nil {
		return nil, unavailable(r.place, err)
	}
	answer := packp.NewUploadPackResponse(request)
	if err := answer.Decode(io.NopCloser(stream)); err != nil {
		_ = stream.Close()
		return nil, r.refused(ctx, err)
	}
	reader := io.Reader(answer)
	if mine.Supports(capability.Sideband64k) {
		reader = sideband.NewDemuxer(sideband.Sideband64k, answer)
	}
	return &joined{Reader: reader, Closer: stream}, nil
}

func (r *remote) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return unavailable(r.place, ctx.Err())
	}
	if text := err.Error(); strings.Contains(text, "not our ref") {
		return notFound("%s has no such commit", r.place)
	}
	return unavailable(r.place, err)
}

func encode(request *packp.UploadPackRequest) ([]byte, error) {
	var out bytes.Buffer
	if err := request.UploadRequest.Encode(&out); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(&out).EncodeString("done\n"); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// bounded fails, with its own error, where a LimitedReader would only end.
type bounded struct {
	r      io.Reader
	left   int64
	excess error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.excess
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

type joined struct {
	io.Reader
	io.Closer
}
