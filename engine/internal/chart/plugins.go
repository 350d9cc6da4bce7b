package chart

import (
	"context"
	"net/url"

	"github.com/pilothouse-dev/pilothouse/engine/internal/getterplugin"
)

// RegisterPlugins makes every scheme that the operator allows plugins for a place for repositories and archives, as
// http:// is one. Only an index at such a place can point to archives at such a place.
func (s *Store) RegisterPlugins(plugins *getterplugin.Plugins, schemes []string) {
	source := newWeb(func(ctx context.Context, ask *Ask, target *url.URL, _ Validators, limit int64) (got, error) {
		who, err := loginFor(ask.ChartSource, target)
		if err != nil {
			return got{}, err
		}
		body, err := plugins.Get(ctx, target, getterplugin.Credentials{Username: who.username, Password: who.password}, limit)
		return got{body: body}, err
	})
	for _, scheme := range schemes {
		s.Register(scheme, source)
	}
}
