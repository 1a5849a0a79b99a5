"""Training losses of `(logits, labels)`, each as a function and as a Module."""

from calibrant.fitting.gamma_history import GammaHistory
from calibrant.losses.adafocal import AdaFocalLoss, adafocal_loss
from calibrant.losses.balanced_softmax import BalancedSoftmaxLoss, balanced_softmax_loss
from calibrant.losses.base import Loss, RowLoss
from calibrant.losses.batch_loss import BatchLoss
from calibrant.losses.brier import BrierLoss, brier_loss
from calibrant.losses.calfocal import CalFocalLoss, calfocal_loss
from calibrant.losses.class_weights import balanced_weights, class_balanced_weights
from calibrant.losses.cost_sensitive import CostSensitiveLoss, cost_sensitive_loss
from calibrant.losses.cross_entropy import CrossEntropyLoss, cross_entropy_loss
from calibrant.losses.dual_focal import DualFocalLoss, dual_focal_loss
from calibrant.losses.entropy_penalty import EntropyPenaltyLoss, entropy_penalty_loss
from calibrant.losses.evaluating import eval_mode
from calibrant.losses.flsd import FLSDLoss, flsd_loss, gamma_for
from calibrant.losses.focal import FocalLoss, focal_loss
from calibrant.losses.function import FunctionLoss
from calibrant.losses.inverse_focal import InverseFocalLoss, inverse_focal_loss
from calibrant.losses.label_smoothing import LabelSmoothingLoss, label_smoothing_loss
from calibrant.losses.logit_adjustment import LogitAdjustmentLoss, logit_adjustment_loss
from calibrant.losses.mmce import MMCELoss, mmce_loss, mmce_penalty
from calibrant.losses.names import as_loss, losses, register
from calibrant.losses.scheduled_focal import ScheduledFocalLoss, scheduled_focal_loss
from calibrant.losses.soft_f1 import SoftF1Loss, soft_f1_loss
from calibrant.losses.sums import LossSum

__all__ = [
    "AdaFocalLoss",
    "BalancedSoftmaxLoss",
    "BatchLoss",
    "BrierLoss",
    "CalFocalLoss",
    "CostSensitiveLoss",
    "CrossEntropyLoss",
    "DualFocalLoss",
    "EntropyPenaltyLoss",
    "FLSDLoss",
    "FocalLoss",
    "FunctionLoss",
    "GammaHistory",
    "InverseFocalLoss",
    "LabelSmoothingLoss",
    "LogitAdjustmentLoss",
    "Loss",
    "LossSum",
    "MMCELoss",
    "RowLoss",
    "ScheduledFocalLoss",
    "SoftF1Loss",
    "adafocal_loss",
    "as_loss",
    "balanced_softmax_loss",
    "balanced_weights",
    "brier_loss",
    "calfocal_loss",
    "class_balanced_weights",
    "cost_sensitive_loss",
    "cross_entropy_loss",
    "dual_focal_loss",
    "entropy_penalty_loss",
    "eval_mode",
    "flsd_loss",
    "focal_loss",
    "gamma_for",
    "inverse_focal_loss",
    "label_smoothing_loss",
    "logit_adjustment_loss",
    "losses",
    "mmce_loss",
    "mmce_penalty",
    "register",
    "scheduled_focal_loss",
    "soft_f1_loss",
]
