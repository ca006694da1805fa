module github.com/windrow-db/windrow/bindings/go

go 1.24
