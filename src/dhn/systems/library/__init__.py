"""The built-in systems, one file each."""

from dhn.systems.library import (
    charged_particle,
    coupled_oscillators,
    double_pendulum,
    elastic_pendulum,
    henon_heiles,
    kepler,
    mass_spring,
    n_pendulum,
    single_pendulum,
    three_body,
)

BUILT_IN = (
    single_pendulum.SYSTEM,
    double_pendulum.SYSTEM,
    n_pendulum.SYSTEM,
    elastic_pendulum.SYSTEM,
    mass_spring.SYSTEM,
    coupled_oscillators.SYSTEM,
    kepler.SYSTEM,
    three_body.SYSTEM,
    henon_heiles.SYSTEM,
    charged_particle.SYSTEM,
)
