// Reads Kubernetes manifests, strictly: every field must be one of its kind's type.
//
// Usage: kubernetes FILE… Prints each object as a line of JSON. Exit code 1: a field or a kind is
// unknown, or a value has the wrong type.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The kinds that our manifests have.
var kinds = map[string]func() meta.Object{
	"v1 ConfigMap":                            func() meta.Object { return new(core.ConfigMap) },
	"v1 PersistentVolumeClaim":                func() meta.Object { return new(core.PersistentVolumeClaim) },
	"v1 Service":                              func() meta.Object { return new(core.Service) },
	"apps/v1 Deployment":                      func() meta.Object { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                     func() meta.Object { return new(apps.StatefulSet) },
	"batch/v1 Job":                            func() meta.Object { return new(batch.Job) },
	"networking.k8s.io/v1 NetworkPolicy":      func() meta.Object { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() meta.Object { return new(policy.PodDisruptionBudget) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() meta.Object { return new(monitoring.ServiceMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() meta.Object { return new(monitoring.PrometheusRule) },
}

var separator = regexp.MustCompile(`(?m)^---.*$`)

func decode(document string) (string, error) {
	var head meta.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		return "", err
	}
	if head.Kind == "" {
		return "", nil // comments alone
	}
	create, isKnown := kinds[head.APIVersion+" "+head.Kind]
	if !isKnown {
		return "", fmt.Errorf("%s %s is not among the known kinds", head.APIVersion, head.Kind)
	}
	object := create()
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		return "", fmt.Errorf("%s: %w", head.Kind, err)
	}
	line, err := json.Marshal(object)
	return string(line), err
}

func main() {
	failed := len(os.Args) < 2
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
			continue
		}
		for _, document := range separator.Split(string(text), -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			line, err := decode(document)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
				failed = true
			} else if line != "" {
				fmt.Println(line)
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}
