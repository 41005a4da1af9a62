module quorate.dev/go/conformance

go 1.23

require (
	go.yaml.in/yaml/v3 v3.0.4
	quorate.dev/go v0.0.0
)

replace quorate.dev/go => ../
