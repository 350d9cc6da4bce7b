package gitsource

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"regexp"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

var chartName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,249}$`)

// pack makes the chart that `helm package` would make of a directory, with nothing in it that is not the files': the
// same files are the same bytes, so that a commit that changed something else is no new chart.
func pack(from *objects, commit, directory, place string) ([]byte, error) {
	files, err := list(from, commit, directory, place)
	if err != nil {
		return nil, err
	}
	name, err := nameOf(from, files, place)
	if err != nil {
		return nil, err
	}
	if files, err = withoutIgnored(from, files, place); err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	unpacked := 0
	for _, file := range files {
		data, err := from.content(file.hash, file.name, place)
		if err != nil {
			return nil, err
		}
		if unpacked += len(data); unpacked > maxUnpacked {
			return nil, invalid("the chart in %s is larger than 100 MiB unpacked", place)
		}
		header := &tar.Header{Name: name + "/" + file.name, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, invalid("the chart in %s has a file with an unusable name: %q", place, file.name)
		}
		if _, err := archive.Write(data); err != nil {
			return nil, err
		}
		if out.Len() > maxPacked {
			return nil, invalid("the chart in %s is larger than 10 MiB packed", place)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	if out.Len() > maxPacked {
		return nil, invalid("the chart in %s is larger than 10 MiB packed", place)
	}
	return out.Bytes(), nil
}

// nameOf reads the chart's name: its directory's in the archive.
func nameOf(from *objects, files []entry, place string) (string, error) {
	at := slices.IndexFunc(files, func(file entry) bool { return file.name == chartFile })
	if at < 0 {
		return "", invalid("Chart.yaml in %s is not a file", place)
	}
	data, err := from.content(files[at].hash, chartFile, place)
	if err != nil {
		return "", err
	}
	var metadata struct {
		Name string `json:"name"`
	}
	if err := yaml.Unmarshal(data, &metadata); err != nil || !chartName.MatchString(metadata.Name) {
		return "", invalid("Chart.yaml in %s is not YAML with a usable name", place)
	}
	return metadata.Name, nil
}

func withoutIgnored(from *objects, files []entry, place string) ([]entry, error) {
	var text []byte
	if at := slices.IndexFunc(files, func(file entry) bool { return file.name == ".helmignore" }); at >= 0 {
		data, err := from.content(files[at].hash, files[at].name, place)
		if err != nil {
			return nil, err
		}
		text = data
	}
	rules, err := rulesOf(text)
	if err != nil {
		return nil, invalid("%v (%s)", err, place)
	}
	return slices.DeleteFunc(files, func(file entry) bool {
		return file.name != chartFile && ignored(rules, file.name)
	}), nil
}
