// Reads Kubernetes manifests, strictly: every field must be one of its kind's type, and every pod must be one that
// PodSecurity's level restricted takes, judged by Kubernetes' own code.
//
// Usage: kubernetes FILE… Prints each object as a line of JSON. Exit code 1: a field or a kind is
// unknown, a value has the wrong type, or a pod is not restricted enough.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	security "k8s.io/pod-security-admission/api"
	checks "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// The kinds that our manifests have.
var kinds = map[string]func() meta.Object{
	"v1 ConfigMap":                            func() meta.Object { return new(core.ConfigMap) },
	"v1 Pod":                                  func() meta.Object { return new(core.Pod) },
	"v1 ServiceAccount":                       func() meta.Object { return new(core.ServiceAccount) },
	"v1 PersistentVolumeClaim":                func() meta.Object { return new(core.PersistentVolumeClaim) },
	"v1 Service":                              func() meta.Object { return new(core.Service) },
	"apps/v1 Deployment":                      func() meta.Object { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                     func() meta.Object { return new(apps.StatefulSet) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() meta.Object { return new(autoscaling.HorizontalPodAutoscaler) },
	"batch/v1 Job":                            func() meta.Object { return new(batch.Job) },
	"networking.k8s.io/v1 Ingress":            func() meta.Object { return new(networking.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":      func() meta.Object { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() meta.Object { return new(policy.PodDisruptionBudget) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() meta.Object { return new(monitoring.ServiceMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() meta.Object { return new(monitoring.PrometheusRule) },
}

var separator = regexp.MustCompile(`(?m)^---.*$`)

var evaluator = newEvaluator()

func newEvaluator() checks.Evaluator {
	made, err := checks.NewEvaluator(checks.DefaultChecks())
	if err != nil {
		panic(err)
	}
	return made
}

// An error names each rule of PodSecurity's level restricted that the object's pod breaks.
func refuse(object meta.Object) error {
	var pod core.PodTemplateSpec
	switch object := object.(type) {
	case *apps.Deployment:
		pod = object.Spec.Template
	case *apps.StatefulSet:
		pod = object.Spec.Template
	case *batch.Job:
		pod = object.Spec.Template
	case *core.Pod:
		pod = core.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}
	default:
		return nil
	}
	restricted := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	result := checks.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return nil
	}
	return fmt.Errorf("%s violates PodSecurity restricted: %s", object.GetName(), result.ForbiddenDetail())
}

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
	if err := refuse(object); err != nil {
		return "", fmt.Errorf("%s %w", head.Kind, err)
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
