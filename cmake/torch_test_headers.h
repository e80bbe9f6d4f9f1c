// The precompiled header of the tests above the LibTorch line. Sources still include what they use.
#include "torch_headers.h"

#include "test_headers.h"
