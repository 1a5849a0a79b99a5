"""AdaFocal as it was released, row by row in plain Python: slow, and easy to check by eye.

Facts of the released code: bins begin equally wide with gamma 1; an update sorts the confidences,
reads edges off at i n / M between neighbours (n stands for the largest), counts rows in (l, u],
and moves gamma; a training row is looked up in [l, u), with open ends; the loss is summed.
"""

import math

import torch


class PlainAdaFocal:
    def __init__(self, n_bins=15, strength=1.0, switch=0.2, gamma_min=-2.0, gamma_max=20.0):
        self.n_bins, self.strength, self.switch = n_bins, strength, switch
        self.gamma_min, self.gamma_max = gamma_min, gamma_max
        self.lower = [i / n_bins for i in range(n_bins)]
        self.upper = [(i + 1) / n_bins for i in range(n_bins)]
        self.gammas = [1.0] * n_bins
        self.errors, self.counts = [0.0] * n_bins, [0] * n_bins

    def update(self, logits, labels):
        confidences, rights = [], []
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
            probs = softmax(row)
            confidences.append(max(probs))
            rights.append(probs.index(max(probs)) == label)
        edges = self.edges_of(sorted(confidences))
        self.lower, self.upper = edges[:-1], edges[1:]
        for b in range(self.n_bins):
            inside = [
                (c, r)
                for c, r in zip(confidences, rights, strict=True)
                if self.lower[b] < c <= self.upper[b]
            ]
            self.counts[b] = len(inside)
            confidence = sum(c for c, _ in inside) / len(inside) if inside else 0.0
            accuracy = sum(r for _, r in inside) / len(inside) if inside else 0.0
            self.errors[b] = confidence - accuracy
            self.gammas[b] = self.moved(self.gammas[b], self.errors[b])

    def edges_of(self, ordered):
        n, edges = len(ordered), []
        for i in range(self.n_bins + 1):
            place = i * n / self.n_bins
            below = math.floor(place)
            if below >= n - 1:
                edges.append(ordered[-1])
            else:
                step = ordered[below + 1] - ordered[below]
                edges.append(ordered[below] + (place - below) * step)
        return edges

    def moved(self, gamma, error):
        if gamma > 0:
            new = gamma * math.exp(self.strength * error)
            if abs(new) < self.switch:
                new = -self.switch
        else:
            new = gamma * math.exp(-self.strength * error)
            if abs(new) < self.switch:
                new = self.switch
        return min(max(new, self.gamma_min), self.gamma_max)

    def bin_of(self, p):
        if p < self.upper[0]:
            return 0
        if p >= self.lower[-1]:
            return self.n_bins - 1
        for b in range(self.n_bins):
            if self.lower[b] <= p < self.upper[b]:
                return b
        raise AssertionError(f"no bin for {p}")

    def loss(self, logits, labels):
        total = torch.zeros((), dtype=logits.dtype)
        for row, label in zip(logits, labels.tolist(), strict=True):
            log_p = torch.log_softmax(row, 0)[label]
            p = log_p.exp()
            gamma = self.gammas[self.bin_of(p.item())]
            base = 1 - p + 1e-20 if gamma >= 0 else 1 + p + 1e-20
            total = total - base ** abs(gamma) * log_p
        return total


def softmax(row):
    top = max(row)
    parts = [math.exp(z - top) for z in row]
    total = sum(parts)
    return [part / total for part in parts]
