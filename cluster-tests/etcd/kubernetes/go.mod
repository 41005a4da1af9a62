// The module whose tests the suite runs, and its version. It has no program of its own.
module quorate/kubernetes

go 1.26.0

require k8s.io/apiserver v0.37.2
