module quorate.dev/go

go 1.23
