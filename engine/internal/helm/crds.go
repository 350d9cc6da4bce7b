package helm

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	crdKind  = "CustomResourceDefinition"
	crdGroup = "apiextensions.k8s.io"
	// establishing is how long a new CRD may take to be served.
	establishing = 60 * time.Second
)

var crdResource = schema.GroupVersionResource{Group: crdGroup, Version: "v1", Resource: "customresourcedefinitions"}

// createCRDs creates what the chart has in crds/ and the cluster lacks, before Helm renders: templates may ask
// which kinds there are. Dependencies decide which subcharts count, and deciding changes a chart: hence a copy.
func (a *run) createCRDs(values map[string]any) error {
	if a.request.GetSkipCrds() {
		return nil
	}
	if info, err := a.charts.Describe(a.request.GetChartDigest()); err != nil || !info.HasCRDs {
		return err
	}
	own, err := a.charts.Load(a.request.GetChartDigest())
	if err != nil {
		return err
	}
	if err := chartutil.ProcessDependencies(own, values); err != nil {
		return err
	}
	var documents []string
	for _, crd := range own.CRDObjects() {
		documents = append(documents, crdDocuments(string(crd.File.Data))...)
	}
	return a.createMissing(documents)
}

// createMissing creates CRDs that are absent and waits until they are served. One that is there is never
// touched, whatever it looks like; and none gets Helm's ownership marks, so that no `helm` will ever delete it.
func (a *run) createMissing(documents []string) error {
	if a.request.GetSkipCrds() || len(documents) == 0 {
		return nil
	}
	var created []*unstructured.Unstructured
	for _, document := range documents {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &crd.Object); err != nil {
			return fault.New(enginev1.Fault_CHART_INVALID, "a CRD of the chart is not YAML: %v", err)
		}
		fresh, err := a.createIfAbsent(crd)
		if err != nil {
			return err
		}
		if fresh {
			created = append(created, crd)
		}
	}
	if len(created) == 0 {
		return nil
	}
	deadline := time.Now().Add(min(establishing, a.timeout()))
	for _, crd := range created {
		if err := a.served(crd, deadline); err != nil {
			return err
		}
	}
	return nil
}

func (a *run) createIfAbsent(crd *unstructured.Unstructured) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if crd.GetName() == "" {
		return false, fault.New(enginev1.Fault_CHART_INVALID, "a CRD of the chart has no name")
	}
	_, err := a.cluster.Metadata().Resource(crdResource).Get(ctx, crd.GetName(), metav1.GetOptions{})
	if err == nil {
		return false, nil
	}
	if apierrors.IsForbidden(err) && a.kindServed(crd) {
		return false, nil // not allowed to look, but it is plainly there
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("cannot look for CRD %s: %w", crd.GetName(), err)
	}
	_, err = a.cluster.Dynamic().Resource(crdResource).Create(ctx, crd, metav1.CreateOptions{FieldManager: "pilothouse"})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot create CRD %s: %w", crd.GetName(), err)
	}
	return true, nil
}

// served waits until the API server has established the CRD and its discovery tells so: an object of a kind that
// is not discovered cannot be built.
func (a *run) served(crd *unstructured.Unstructured, deadline time.Time) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		live, err := a.cluster.Dynamic().Resource(crdResource).Get(ctx, crd.GetName(), metav1.GetOptions{})
		cancel()
		if err == nil && established(live) {
			a.cluster.InvalidateDiscovery()
			if a.kindServed(crd) {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fault.New(enginev1.Fault_TIMEOUT, "CRD %s was created, but is not served yet", crd.GetName())
		}
		select {
		case <-a.waits.Done():
			return fault.New(enginev1.Fault_CANCELLED, "waiting for CRD %s was cancelled", crd.GetName())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (a *run) kindServed(crd *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	_, err := a.cluster.Mapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	return err == nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == "Established" {
			return fields["status"] == "True"
		}
	}
	return false
}

// crdDocuments gives the CRDs of a stream of documents. Most streams have none, and looking is cheap.
func crdDocuments(manifest string) []string {
	if !strings.Contains(manifest, crdKind) {
		return nil
	}
	var found []string
	for _, document := range splitDocuments(manifest) {
		if isCRD(document) {
			found = append(found, document)
		}
	}
	return found
}

// withoutCRDs takes CRDs out of a manifest: what a stored manifest names, the next upgrade may delete.
func withoutCRDs(manifest string) string {
	if !strings.Contains(manifest, crdKind) {
		return manifest
	}
	var kept strings.Builder
	for _, document := range splitDocuments(manifest) {
		if !isCRD(document) {
			kept.WriteString("---\n")
			kept.WriteString(strings.TrimLeft(document, "\n"))
			if !strings.HasSuffix(document, "\n") {
				kept.WriteString("\n")
			}
		}
	}
	return kept.String()
}

func isCRD(document string) bool {
	if !strings.Contains(document, crdKind) {
		return false
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		return false
	}
	return head.Kind == crdKind && strings.HasPrefix(head.APIVersion, crdGroup+"/")
}

// splitDocuments splits at lines that are `---`, as YAML does, and drops what is empty.
func splitDocuments(manifest string) []string {
	var out []string
	var current bytes.Buffer
	flush := func() {
		if strings.TrimSpace(current.String()) != "" {
			out = append(out, current.String())
		}
		current.Reset()
	}
	for line := range strings.Lines(manifest) {
		bare := strings.TrimRight(line, " \t\r\n")
		if bare == "---" || strings.HasPrefix(bare, "--- ") {
			flush()
			// A comment or content may follow on the marker's line.
			if rest := strings.TrimSpace(strings.TrimPrefix(bare, "---")); rest != "" {
				current.WriteString(rest + "\n")
			}
			continue
		}
		current.WriteString(line)
	}
	flush()
	return out
}
