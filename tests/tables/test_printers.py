from .one_test import agreement_test
from .printers import SUITE

test_agreement = agreement_test(SUITE)
