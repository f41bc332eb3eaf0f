"""Removing the detach before the policy helps only the planner; the camera network stays dead.
Two more cuts lie behind the first: a value taken to bytes in the preprocessing and a no_grad block around the pose."""
import torch
from torch import nn


class Camera(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.expose = nn.Linear(3, 4)

    def forward(self, img):
        h = torch.sigmoid(self.expose(torch.relu(self.conv(img)).mean((2, 3))))
        return h.mul(255).to(torch.uint8)  # CAUSE-1


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 5)

    def forward(self, raw):
        with torch.no_grad():  # CAUSE-2
            return torch.tanh(self.lift(raw.float() / 255))  # ALSO-2


class Robot(nn.Module):
    def __init__(self):
        super().__init__()
        self.camera = Camera()
        self.pose = Pose()
        self.planner = nn.Linear(5, 5)
        self.policy = nn.Linear(5, 2)

    def forward(self, img):
        plan = torch.relu(self.planner(self.pose(self.camera(img))))
        return self.policy(plan.detach())  # CAUSE-3


def make():
    torch.manual_seed(0)
    return dict(model=Robot(), args=(torch.randn(3, 1, 6, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "camera.conv.weight": "none", "camera.conv.bias": "none", "camera.expose.weight": "none",
        "camera.expose.bias": "none", "pose.lift.weight": "none", "pose.lift.bias": "none",
        "planner.weight": "none", "planner.bias": "none", "policy.weight": "flows", "policy.bias": "flows",
    },
    causes=[
        dict(kind="int-cast", line="CAUSE-1",
             params=["camera.conv.weight", "camera.conv.bias", "camera.expose.weight", "camera.expose.bias"]),
        dict(kind="no-grad", line="CAUSE-2", also=["ALSO-2"], params=["pose.lift.weight", "pose.lift.bias"]),
        dict(kind="detach", line="CAUSE-3", params=["planner.weight", "planner.bias"]),
    ],
    fix=None,
    after=None,
)
