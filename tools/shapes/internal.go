package main

import (
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/discovery"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/node"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
)

// Error texts show the server's internal types, which have no JSON names. Each row of a type tells
// the name that is printed, the name in the served version (made up if it is not in the same place),
// whether an empty value is left out, and either the value that is printed when there is none or
// the type of what is inside ("[]T" and "{}T" are lists and maps of T, "*T" may be null).
type row [4]any

var pairs = [][2]reflect.Type{
	pair[core.Pod, corev1.Pod](),
	pair[core.PodTemplate, corev1.PodTemplate](),
	pair[core.Service, corev1.Service](),
	pair[core.Node, corev1.Node](),
	pair[core.PersistentVolume, corev1.PersistentVolume](),
	pair[core.PersistentVolumeSource, corev1.PersistentVolumeSource](),
	pair[core.PersistentVolumeClaim, corev1.PersistentVolumeClaim](),
	pair[core.ResourceQuota, corev1.ResourceQuota](),
	pair[apps.StatefulSet, appsv1.StatefulSet](),
	pair[apps.Deployment, appsv1.Deployment](),
	pair[apps.DaemonSet, appsv1.DaemonSet](),
	pair[batch.Job, batchv1.Job](),
	pair[autoscaling.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscaler](),
	pair[networking.Ingress, networkingv1.Ingress](),
	pair[networking.IngressClass, networkingv1.IngressClass](),
	pair[networking.NetworkPolicy, networkingv1.NetworkPolicy](),
	pair[discovery.EndpointSlice, discoveryv1.EndpointSlice](),
	pair[node.RuntimeClass, nodev1.RuntimeClass](),
	pair[policy.PodDisruptionBudget, policyv1.PodDisruptionBudget](),
	pair[rbac.RoleBinding, rbacv1.RoleBinding](),
	pair[rbac.ClusterRole, rbacv1.ClusterRole](),
	pair[resource.ResourceClaim, resourcev1.ResourceClaim](),
	pair[resource.ResourceClaimTemplate, resourcev1.ResourceClaimTemplate](),
	pair[resource.ResourceSlice, resourcev1.ResourceSlice](),
	pair[resource.DeviceClass, resourcev1.DeviceClass](),
	pair[storage.StorageClass, storagev1.StorageClass](),
	pair[storage.CSIDriver, storagev1.CSIDriver](),
	pair[storage.CSINode, storagev1.CSINode](),
	pair[storage.VolumeAttachment, storagev1.VolumeAttachment](),
	pair[admissionregistration.ValidatingWebhookConfiguration, admissionregistrationv1.ValidatingWebhookConfiguration](),
	pair[admissionregistration.MutatingWebhookConfiguration, admissionregistrationv1.MutatingWebhookConfiguration](),
	// Before the whole, where these types are met in places that the served version has not.
	pair[apiextensions.CustomResourceDefinitionVersion, apiextensionsv1.CustomResourceDefinitionVersion](),
	pair[apiextensions.CustomResourceDefinition, apiextensionsv1.CustomResourceDefinition](),
}

var internals = map[string][]row{}

func pair[Internal, Served any]() [2]reflect.Type {
	return [2]reflect.Type{reflect.TypeFor[Internal](), reflect.TypeFor[Served]()}
}

func internalTypes() map[string][]row {
	for _, both := range pairs {
		internal(both[0], both[1])
	}
	return internals
}

func internal(goType, served reflect.Type) string {
	key := strings.TrimPrefix(name(goType), "apis.")
	if _, done := internals[key]; !done {
		internals[key] = nil
		internals[key] = rows(goType, served)
	}
	return key
}

func rows(goType, served reflect.Type) []row {
	var all []row
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" && field.Type.Kind() == reflect.Struct {
			all = append(all, rows(field.Type, served)...)
			continue
		}
		if tag == "-" {
			continue
		}
		source, sourceType := servedField(served, field.Name)
		printed := field.Name
		if tag != "" {
			printed = tag
		}
		omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		all = append(all, row{printed, source, omitted, content(field.Type, sourceType)})
	}
	return all
}

func servedField(served reflect.Type, goName string) (string, reflect.Type) {
	if served == nil || served.Kind() != reflect.Struct {
		return "", nil
	}
	field, found := served.FieldByName(goName)
	if !found {
		// Moved elsewhere in the served version, under a like name.
		return strings.ToLower(goName[:1]) + goName[1:], nil
	}
	tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return tag, field.Type
}

func content(goType, served reflect.Type) any {
	switch goType.Kind() {
	case reflect.Pointer:
		if isStruct(goType.Elem()) {
			return "*" + internal(goType.Elem(), element(served))
		}
		return nil
	case reflect.Slice:
		if isStruct(goType.Elem()) {
			return "[]" + internal(goType.Elem(), element(served))
		}
		return nil
	case reflect.Map:
		if isStruct(goType.Elem()) {
			return "{}" + internal(goType.Elem(), element(served))
		}
		return nil
	case reflect.Struct:
		switch {
		case goType == quantity:
			return []any{"0"}
		case goType == reflect.TypeFor[intstr.IntOrString]():
			return []any{0}
		case opaque[goType] || goType == reflect.TypeFor[apiextensions.JSONSchemaProps]():
			return nil
		}
		return internal(goType, deref(served))
	case reflect.Interface:
		return nil
	default:
		return []any{reflect.Zero(goType).Interface()}
	}
}

func isStruct(goType reflect.Type) bool {
	return goType.Kind() == reflect.Struct && !opaque[goType] && goType != quantity &&
		goType != reflect.TypeFor[apiextensions.JSONSchemaProps]()
}

func element(served reflect.Type) reflect.Type {
	if served == nil {
		return nil
	}
	switch served.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return served.Elem()
	}
	return served
}

func deref(served reflect.Type) reflect.Type {
	if served != nil && served.Kind() == reflect.Pointer {
		return served.Elem()
	}
	return served
}
