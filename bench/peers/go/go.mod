module noh.bench/peers

go 1.19
