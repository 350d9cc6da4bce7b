package raw

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Reflect lists and watches into the store until the context ends: resumed where it stopped when the API
// server restarts, listed again after a gap, and without a request while nothing changes.
func Reflect(ctx context.Context, lw *ListWatch, store cache.ReflectorStore) {
	name := lw.Target.Plural
	if lw.Target.Group != "" {
		name += "." + lw.Target.Group
	}
	cache.NewReflectorWithOptions(lw, nil, store, cache.ReflectorOptions{
		Name:            name,
		TypeDescription: name,
		Backoff:         &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second},
	}).RunWithContext(ctx)
}

// isRetriedInSilence is client-go's own list of errors after which a reflector keeps watching instead of listing.
func isRetriedInSilence(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}
