"""`/regions`: the regional profiles, read-only."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from governance.regions.models import RegionProfile
from governance.regions.selectors import region_profile_list
from reasoncodes.base.api import ApiView


class RegionOut(serializers.ModelSerializer[RegionProfile]):
    class Meta:
        model = RegionProfile
        fields = ["id", "code", "name", "version", "sha256", "document", "disclaimer", "at"]


class RegionListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="regions_list", responses=RegionOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, region_profile_list(), RegionOut)
