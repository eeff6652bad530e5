module contract

go 1.25.0
