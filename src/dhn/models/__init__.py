"""Networks, Hamiltonians and the DHN built from them."""

from dhn.models.config import DenoisingConfig as DenoisingConfig
from dhn.models.config import DHNConfig as DHNConfig
from dhn.models.config import NetworkConfig as NetworkConfig
from dhn.models.contract import AbstractForecaster as AbstractForecaster
from dhn.models.contract import ModelContext as ModelContext
from dhn.models.contract import WindowShape as WindowShape
from dhn.models.denoise import denoise as denoise
from dhn.models.dhn import DHNModel as DHNModel
from dhn.models.hamiltonian import LeftHamiltonian as LeftHamiltonian
from dhn.models.hamiltonian import RightHamiltonian as RightHamiltonian
from dhn.models.stage import LinkedStage as LinkedStage
from dhn.models.stage import PairedStage as PairedStage
