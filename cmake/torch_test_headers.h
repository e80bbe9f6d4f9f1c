// The precompiled header of the tests above the LibTorch line. Sources still include what they use.
#include "test_headers.h"
#include "torch_headers.h"
