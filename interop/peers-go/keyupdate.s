// Empty: lets the compiler accept a function without a body (see keyupdate.go).
