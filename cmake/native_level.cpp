// Its exit status is the level of x86-64 that this machine has.
int main() { return __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 2; }
