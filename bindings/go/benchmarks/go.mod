module github.com/windrow-db/windrow/bindings/go/benchmarks

go 1.24

require (
	github.com/syndtr/goleveldb v1.0.0
	github.com/windrow-db/windrow/bindings/go v0.0.0
	go.etcd.io/bbolt v1.3.5
)

require (
	github.com/golang/snappy v0.0.0-20180518054509-2e65f85255db // indirect
	golang.org/x/sys v0.0.0-20200202164722-d101bd2416d5 // indirect
)

replace github.com/windrow-db/windrow/bindings/go => ../
