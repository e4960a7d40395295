from .definitions import SUITE
from .one_test import agreement_test

test_agreement = agreement_test(SUITE)
