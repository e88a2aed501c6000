// The number types that templates are instantiated for: GS_FOR_SCALARS(M) is M(T) for each of them.
#pragma once
#include <complex>

#define GS_FOR_SCALARS(M) M(float) M(double) M(std::complex<float>) M(std::complex<double>)
