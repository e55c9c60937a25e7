"""Training, with Lightning."""

from etude.training.lean_import import import_lightning

import_lightning()
