package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
)

// Bounds of a chart: a source may be hostile, and one release must not take the engine's memory.
const (
	maxPacked   = 10 << 20
	maxUnpacked = 100 << 20
	maxFile     = 5 << 20
	maxFiles    = 10_000
	maxNesting  = 5 // packed charts in charts/ of packed charts
)

// budget is what is left for a chart and the packed charts inside it, together.
type budget struct {
	bytes int64 // of files
	files int
	raw   int64 // of everything in the archives, padding and what is passed over included
}

// spend reads from the budget's raw bytes: what is inside an archive costs time even if nobody keeps it.
type spend struct {
	from io.Reader
	left *budget
}

func (s spend) Read(p []byte) (int, error) {
	if s.left.raw <= 0 {
		return 0, errTooLarge
	}
	n, err := s.from.Read(p[:min(int64(len(p)), s.left.raw)])
	s.left.raw -= int64(n)
	return n, err
}

var errTooLarge = invalid("the chart is larger than 100 MiB unpacked")

var (
	drive = regexp.MustCompile(`^[a-zA-Z]:`)
	bom   = []byte{0xEF, 0xBB, 0xBF}
)

// unpack reads a packed chart's files, names relative to the chart. Bounds hold while reading: nothing is
// believed that a header says.
func unpack(packed []byte) ([]*archive.BufferedFile, int64, error) {
	if len(packed) > maxPacked {
		return nil, 0, invalid("the chart is larger than 10 MiB packed")
	}
	left := &budget{bytes: maxUnpacked, files: maxFiles, raw: maxUnpacked + maxFiles*1024}
	files, err := unpackWithin(left, packed, 0)
	if err != nil {
		return nil, 0, err
	}
	return files, maxUnpacked - left.bytes, nil
}

func unpackWithin(left *budget, packed []byte, depth int) ([]*archive.BufferedFile, error) {
	if depth > maxNesting {
		return nil, invalid("the chart packs charts more than %d deep", maxNesting)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, invalid("this is not a chart: not a gzip archive")
	}
	entries := tar.NewReader(spend{zipped, left})
	var files []*archive.BufferedFile
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, broken(err)
		}
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
			continue
		case tar.TypeReg:
		default:
			return nil, invalid("the chart contains a link or a special file: %q", header.Name)
		}
		name, err := inside(header.Name)
		if err != nil {
			return nil, err
		}
		data, err := readFile(left, entries, name)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(name, "charts/") && strings.Count(name, "/") == 1 && strings.HasSuffix(name, ".tgz") {
			// Helm will unpack it when the chart is loaded: it counts, and obeys the same rules.
			if _, err := unpackWithin(left, data, depth+1); err != nil {
				return nil, err
			}
		}
		files = append(files, &archive.BufferedFile{Name: name, ModTime: header.ModTime, Data: data})
	}
	if len(files) == 0 {
		return nil, invalid("this is not a chart: the archive is empty")
	}
	return files, nil
}

func readFile(left *budget, r io.Reader, name string) ([]byte, error) {
	left.files--
	if left.files < 0 {
		return nil, invalid("the chart has more than %d files", maxFiles)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, broken(err)
	}
	if len(data) > maxFile {
		return nil, invalid("the chart's file %q is larger than 5 MiB", name)
	}
	left.bytes -= int64(len(data))
	if left.bytes < 0 {
		return nil, errTooLarge
	}
	return bytes.TrimPrefix(data, bom), nil
}

func broken(err error) error {
	if errors.Is(err, errTooLarge) {
		return errTooLarge
	}
	return invalid("this is not a chart: a broken archive (%s)", oneLine(err.Error()))
}

// inside turns an archive's name into the chart's: the first element is the chart's own directory.
func inside(name string) (string, error) {
	clean := strings.ReplaceAll(name, `\`, "/")
	_, rest, found := strings.Cut(clean, "/")
	if !found {
		return "", invalid("this is not a chart: %q is not in a directory", name)
	}
	for _, part := range strings.Split(clean, "/") {
		if part == ".." {
			return "", invalid("the chart reaches outside its directory: %q", name)
		}
	}
	rest = path.Clean(rest)
	if rest == "." || path.IsAbs(clean) || path.IsAbs(rest) || drive.MatchString(rest) {
		return "", invalid("the chart reaches outside its directory: %q", name)
	}
	return rest, nil
}
