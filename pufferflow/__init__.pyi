"""The public names, each with the module it comes from: the one list of them."""

from . import accounting as accounting
from . import audit as audit
from . import dp as dp
from . import errors as errors
from . import general as general
from . import hmm as hmm
from . import mechanisms as mechanisms
from . import models as models
from . import networks as networks
from . import publish as publish
from .accounting.event import Accountant as Accountant
from .accounting.event import event_epsilon as event_epsilon
from .accounting.event import influence_curve as influence_curve
from .accounting.ledger import Ledger as Ledger
from .audit import lower_bound as lower_bound
from .audit import privacy_loss as privacy_loss
from .errors import PufferflowError as PufferflowError
from .general import PufferfishFramework as PufferfishFramework
from .mechanisms import NoiseScale as NoiseScale
from .mechanisms import certify as certify
from .mechanisms import gk16 as gk16
from .mechanisms import group_dp as group_dp
from .mechanisms import leakage as leakage
from .mechanisms import leakage_loss as leakage_loss
from .mechanisms import mqm_approx as mqm_approx
from .mechanisms import mqm_exact as mqm_exact
from .mechanisms import wasserstein as wasserstein
from .models.bounded import IntervalFamily as IntervalFamily
from .models.bounded import TotalVariationFamily as TotalVariationFamily
from .models.chain import MarkovChain as MarkovChain
from .models.estimation import fit_chain as fit_chain
from .models.families import BinaryInterval as BinaryInterval
from .models.families import ChainFamily as ChainFamily
from .models.mixing import MixingFamily as MixingFamily
from .models.mixing import mixing as mixing
from .models.processes import HiddenChain as HiddenChain
from .models.processes import PeriodicChain as PeriodicChain
from .publish.fit import fit as fit
from .publish.plan import plan as plan
from .publish.private_fit import fit_privately as fit_privately
from .publish.release import release as release
from .publish.result import Release as Release
from .publish.running_count import RunningCount as RunningCount
from .verify import verify_certificate as verify_certificate

__version__: str
